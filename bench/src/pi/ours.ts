import { PiSandboxBroker } from '@sandbox/pi-broker'

// A bound Pi broker with every check on, in a process of its own.

const [socketPath = '', upstream = ''] = process.argv.slice(2)
const broker = new PiSandboxBroker({
  model: 'claude-host',
  upstream,
  allowHttp: true,
  oauthToken: () => 'sk-ant-oat01-bench-0123456789abcdefghijklmnopqrstuv',
  maxCalls: 1000,
  onCall: () => {},
  onFailure: () => {},
})
await broker.listen(socketPath)
const { nonce } = broker.bind({
  channel: 'bench:room',
  speaker: { id: 'u-1', name: 'Ann' },
  profile: 'default',
  deadline: performance.now() + 3_600_000,
  signal: new AbortController().signal,
})
process.on('disconnect', () => process.exit(0))
process.send?.({ nonce })
