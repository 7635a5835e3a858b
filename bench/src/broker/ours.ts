import { join } from 'node:path'
import { openSealedBroker, type SealedBroker } from '@sandbox/broker'

// Our broker with every check on, in a process of its own: as many bound brokers as the generator asks for.

const [dir = '', upstream = ''] = process.argv.slice(2)
const open: SealedBroker[] = []
let count = 0

process.on('message', async (message: { open?: number; close?: true }) => {
  if (message.close === true) {
    await Promise.all(open.splice(0).map((broker) => broker.stop()))
    process.send?.({ closed: true })
  } else if (message.open !== undefined) {
    process.send?.({ doors: await Promise.all(Array.from({ length: message.open }, door)) })
  } else {
    const { user, system } = process.cpuUsage()
    process.send?.({ cpuUs: user + system, rssBytes: process.memoryUsage.rss() })
  }
})
process.on('disconnect', () => process.exit(0))
process.send?.({ ready: true })

async function door() {
  const broker = openSealedBroker({
    modelUrl: `${upstream}/v1/chat/completions`,
    model: 'host-model',
    apiKey: () => 'sk-bench-0123456789abcdefghijklmnopqrstuv',
    allowHttp: true,
    maxCalls: 1000,
    maxParallelCalls: 16,
    onCall: () => {},
  })
  open.push(broker)
  count += 1
  const socketPath = join(dir, `o${count}.sock`)
  await broker.listen(socketPath)
  const { nonce } = broker.bind({
    turnId: `t-${count}`,
    context: { channel: 'bench:room', speaker: { id: 'u-1', name: 'Ann' } },
    signal: new AbortController().signal,
  })
  return { socketPath, nonce }
}
