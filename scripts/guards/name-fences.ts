import { type Finding, fail } from './finding.ts'
import type { SourceFile } from './source-file.ts'
import { isTestPath, type Workspace } from './source-tree.ts'

/** A fence that dependency-cruiser cannot hold, since it sees files and not names. */
interface NameFence {
  readonly rule: string
  readonly why: string
  /** Files that the fence is for. */
  readonly guards: (path: string) => boolean
  /** Imports that it looks at. */
  readonly source: (specifier: string) => boolean
  readonly forbids: (name: string, typeOnly: boolean) => boolean
}

const PLUGIN = 'packages/roundtable-plugin/src/'
const CONSTRUCTORS =
  /^(\*|createDockerDriver|createProcessDriver|openSealedBroker|openPiBroker|SandboxBroker|PiSandboxBroker|precheckBroker)$/

const NAME_FENCES: readonly NameFence[] = [
  {
    rule: 'only-defaults-constructs',
    why: 'drivers and brokers are made in the files called defaults; everybody else is handed them',
    guards: (path) =>
      path.startsWith(PLUGIN) && !/^((pi-)?|prechecks\/)defaults\.ts$/.test(path.slice(PLUGIN.length)),
    source: (specifier) => /^@sandbox\/(docker-worker|broker|pi-broker)(\/|$)/.test(specifier),
    forbids: (name, typeOnly) => !typeOnly && CONSTRUCTORS.test(name),
  },
  {
    rule: 'runtime-knows-no-chat',
    why: 'of the host’s contract a runtime knows the types ChannelKey and HostLogger, nothing of the chat',
    guards: (path) => path.startsWith(`${PLUGIN}runtime/`),
    source: (specifier) => /(^|\/)host-contract\.ts$/.test(specifier),
    forbids: (name, typeOnly) => !(typeOnly && (name === 'ChannelKey' || name === 'HostLogger')),
  },
]

/** Checks who imports which name. Tests are free. */
export function checkNames(workspaces: readonly Workspace[]): Finding[] {
  return workspaces.flatMap((workspace) =>
    workspace.files.filter((file) => !isTestPath(file.path)).flatMap(checkFile),
  )
}

function checkFile(file: SourceFile): Finding[] {
  return NAME_FENCES.filter((fence) => fence.guards(file.path)).flatMap((fence) =>
    file.imports
      .filter((one) => fence.source(one.specifier))
      .flatMap((one) =>
        one.names
          .filter(({ name, typeOnly }) => fence.forbids(name, typeOnly))
          .map(({ name }) =>
            fail(
              fence.rule,
              `${file.path}:${one.line}`,
              `imports ${name} from ${one.specifier}: ${fence.why}`,
            ),
          ),
      ),
  )
}
