"""The roles of agents of other libraries, by their names and by what distinguishes them."""

from collections.abc import Hashable, Sequence

from hopplus_doctor.names import stem


def roles_of(agents: Sequence[Hashable], kinds: Sequence[Hashable]) -> tuple[str, ...]:
    """The role of each agent: its name without the number; agents of one name but of other kinds are told apart.

    Empty if all agents have one role.
    """
    seats = list(zip(map(stem, agents), kinds, strict=True))
    different = list(dict.fromkeys(seats))
    if len(different) == 1:
        return ()
    alike = {name: [seat for seat in different if seat[0] == name] for name, _ in seats}
    return tuple(
        f"{name}_{alike[name].index((name, kind)) + 1}" if len(alike[name]) > 1 else name for name, kind in seats
    )
