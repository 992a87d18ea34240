"""The environment of page templates."""

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined


def template_environment(*packages: str) -> Environment:
    """The environment of the templates of some packages and of this one; all values are escaped."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in (*packages, "hopplus_doctor")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment
