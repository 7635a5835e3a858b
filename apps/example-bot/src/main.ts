import { join } from 'node:path'
import { readConfig, USAGE } from './config.ts'
import { checkCommand } from './demo/check-command.ts'
import { BotError } from './errors.ts'
import { keysCheck, keysExplain } from './keys/keys-command.ts'
import { serveDemo } from './serve-demo.ts'
import { defaultStatePath } from './state-dir.ts'

// A closed terminal must not end the process before everything is stopped.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

try {
  await run()
} catch (error) {
  process.stderr.write(`${wordsFor(error)}\n`)
  process.exitCode = BotError.isInstance(error) && error.code === 'usage' ? 2 : 1
}

async function run(): Promise<void> {
  const config = readConfig()
  const keysPath = (stateDir = defaultStatePath()) => join(stateDir, 'keys', 'keys.json')
  switch (config.command) {
    case 'help':
      return print(USAGE.trimEnd())
    case 'serve':
      return serveDemo(config)
    case 'check':
      process.exitCode = await checkCommand(config)
      return
    case 'keys-check':
      return print(keysCheck({ path: keysPath(config.stateDir) }))
    case 'keys-explain':
      return print(keysExplain({ ...config, path: keysPath(config.stateDir) }))
  }
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Errors of ours say in their message what to do; anything else is a bug and shows where it is. */
function wordsFor(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return typeof (error as { code?: unknown }).code === 'string'
    ? error.message
    : (error.stack ?? error.message)
}
