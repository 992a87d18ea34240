"""`hopplus.doctor` gives its public names, and importing it does not import JAX."""

import subprocess
import sys

import pytest

import hopplus.doctor


def test_every_public_name_can_be_imported_and_is_no_module():
    values = {name: getattr(hopplus.doctor, name) for name in hopplus.doctor.__all__}
    assert not [name for name, value in values.items() if type(value) is type(hopplus.doctor)]
    from hopplus.doctor import examine
    from hopplus.doctor.examination import examine as original

    assert examine is original


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        hopplus.doctor.nothing  # noqa: B018


def test_importing_the_doctor_does_not_import_jax():
    code = "import sys, hopplus.doctor; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
