import { join } from 'node:path'
import { keyFile } from '@sandbox/credential-scope/sources'
import { type KeysPlace, readConfig, USAGE } from './config.ts'
import { BotError } from './errors.ts'
import { keysCheck, keysExplain } from './keys/keys-command.ts'
import { defaultStatePath } from './state-dir.ts'

// A closed terminal must not end the process before everything is stopped.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

try {
  await run()
} catch (error) {
  process.stderr.write(`${wordsFor(error)}\n`)
  process.exitCode = BotError.isInstance(error) && error.code === 'usage' ? 2 : 1
}

/** What runs a bot is loaded when a bot runs: the small commands answer at once. */
async function run(): Promise<void> {
  const config = readConfig()
  switch (config.command) {
    case 'help':
      return print(USAGE.trimEnd())
    case 'serve':
      return (await import('./serve-demo.ts')).serveDemo(config)
    case 'bot':
      return (await import('./operator/serve-bot.ts')).serveBot(config)
    case 'check':
      process.exitCode = await (await import('./demo/check-command.ts')).checkCommand(config)
      return
    case 'init':
      return (await import('./operator/init-command.ts')).initCommand(config)
    case 'doctor':
      process.exitCode = await (await import('./operator/doctor-command.ts')).doctorCommand(config)
      return
    case 'keys-check':
      return print(await keysCheck(await keysOf(config)))
    case 'keys-explain':
      return print(await keysExplain({ ...config, ...(await keysOf(config)) }))
  }
}

async function keysOf({ path, stateDir = defaultStatePath() }: KeysPlace) {
  if (path === undefined) {
    const keys = join(stateDir, 'keys', 'keys.json')
    return { keys: keyFile({ path: keys }), path: keys }
  }
  const [{ readBotFile }, { openKeys }] = await Promise.all([
    import('./operator/read-bot-file.ts'),
    import('./operator/open-keys.ts'),
  ])
  const config = readBotFile(path)
  return { keys: openKeys(config), path: config.keys }
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
