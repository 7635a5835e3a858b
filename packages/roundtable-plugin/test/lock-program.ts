import { lockForThisHost } from '../src/runtime/host-lock.ts'

// Takes the directory that is named, says how that went, and keeps it until it is killed or its input ends.
try {
  const unlock = lockForThisHost('run root', process.argv[2] as string)
  process.stdin.on('end', unlock).resume()
  process.stdout.write('locked\n')
} catch (error) {
  process.stdout.write(`${(error as Error).message}\n`)
}
