#!/usr/bin/env node
import { runCommand } from './command/run-command.ts'

const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort(signal))
// A reader that has seen enough, such as "head", is no failure.
process.stdout.on('error', () => process.exit())

process.exitCode = await runCommand(process.argv.slice(2), {
  env: process.env,
  signal: stop.signal,
  out: (line) => process.stdout.write(`${line}\n`),
  progress: (line) => process.stderr.write(`${line}\n`),
})
