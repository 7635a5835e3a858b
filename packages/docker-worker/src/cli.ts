#!/usr/bin/env node
import { StringDecoder } from 'node:string_decoder'
import { runCommand } from './command/run-command.ts'
import { withoutControls } from './host/container/bounded-output.ts'

const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop.abort(signal))
// A reader that has seen enough, such as "head", is no failure: but what runs for it has to be removed first.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => stop.abort('SIGPIPE'))

/** A terminal obeys what is written to it, so it gets a program's text without its control characters. */
function passOn(target: NodeJS.WriteStream) {
  if (!target.isTTY) return (chunk: Uint8Array) => target.write(chunk)
  const decoder = new StringDecoder('utf8')
  return (chunk: Uint8Array) => target.write(withoutControls(decoder.write(Buffer.from(chunk))))
}

const passers = [passOn(process.stdout), passOn(process.stderr)] as const

process.exitCode = await runCommand(process.argv.slice(2), {
  env: process.env,
  signal: stop.signal,
  out: (line) => process.stdout.write(`${line}\n`),
  progress: (line) => process.stderr.write(`${line}\n`),
  write: (stream, chunk) => (stream === 2 ? passers[1] : passers[0])(chunk),
})
