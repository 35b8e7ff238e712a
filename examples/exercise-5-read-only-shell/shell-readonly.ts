// A shell that only looks: the local one, which takes no commands but a few.
//
// A guard-rail and no boundary: it knows a few words of a language that it does not read, so it refuses whatever could
// begin a second command or write a file; and `cat` reads every file that the user can read.
import { LocalShell, type ShellSpec } from 'cordis'

const ALLOWED = ['ls', 'cat', 'echo']

/** With these a command is more than one, or writes. */
const REFUSED = [';', '&', '|', '\n', '\r', '`', '$(', '<', '>']

export default class ShellReadonly extends LocalShell {
  override run(spec: ShellSpec, signal?: AbortSignal) {
    const problem = objection(spec.command)
    if (problem) throw new Error(problem)
    return super.run(spec, signal)
  }
}

function objection(command: string) {
  const sign = REFUSED.find(it => command.includes(it))
  if (sign) return `${JSON.stringify(sign)} is not allowed here; give one command that only looks`
  const first = command.trim().split(/[ \t]/)[0]
  if (!ALLOWED.includes(first)) return `\`${first}\` is none of ${ALLOWED.join(', ')}`
}
