"""Help as a bash completion."""
import shlex

_SCRIPT = """\
# bash completion for {name}; made from its --help.
_{function}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} place={name} word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$place $word" in
      {places}) place="$place $word" ;;
    esac
  done
  local choices=
  case "$place $previous" in
{values}
    *)
      case $place in
{words}
      esac
      [[ $current == -* ]] || choices=$(compgen -W "$choices" -- "$current" | grep -v '^-')
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$current")
}}
complete -o bashdefault -o default -F _{function} {name}
"""


def _walk(command):
    yield command
    for inner in command.commands:
        yield from _walk(inner)


def script(program):
    """The completion of a program: commands, options, and options' values where they are a list; else file names."""
    places, values, words = [], [], []
    for command in _walk(program):
        place = " ".join(command.words)
        if command is not program:
            places.append(shlex.quote(place))
        names = [inner.words[-1] for inner in command.commands]
        for option in command.options:
            names += option.names()
            if not option.takes_value():
                continue
            patterns = "|".join(shlex.quote(f"{place} {name}") for name in option.names())
            values.append(f"    {patterns}) choices={shlex.quote(' '.join(option.choices()))} ;;")
        words.append(f"        {shlex.quote(place)}) choices={shlex.quote(' '.join(names))} ;;")
    return _SCRIPT.format(name=program.words[0], function=program.words[0].replace("-", "_"),
                          places="|".join(places) or "''", values="\n".join(values), words="\n".join(words))
