import { once } from 'node:events'
import { createHost } from '@sandbox/roundtable-plugin/host'
import { discordSurface } from '../../src/surfaces/discord/index.ts'

// A bot that is told on stdin to stop; nothing else may keep its process.
const [api = '', token = ''] = process.argv.slice(2)
const surface = discordSurface({
  api,
  token,
  commands: () => host.commands,
  explain: () => ({ rule: undefined, source: undefined, fingerprint: undefined }),
  log: (line) => process.stdout.write(`${line}\n`),
})
const host = await createHost({ plugins: [], surfaces: [surface] })
await host.start()
process.stdout.write('started\n')
await once(process.stdin, 'data')
await host.stop()
process.stdin.destroy()
