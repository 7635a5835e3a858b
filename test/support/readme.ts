import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { sourceFlags } from '@sandbox/testing'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The TypeScript blocks of the README, by the package that they import. */
export function readmeBlocks(): ReadonlyMap<string, string> {
  const text = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  return new Map(
    [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = '']) => [
      /from '(@sandbox\/[a-z-]+)'/.exec(code)?.[1] ?? 'none',
      code,
    ]),
  )
}

/** Runs a block as it stands, from the repository's root, and returns what it printed. */
export async function runBlock(name: string, env: Record<string, string> = {}): Promise<string> {
  const code = readmeBlocks().get(name)
  if (code === undefined) throw new TypeError(`the README has no block for ${name}`)
  const typed = process.versions.bun === undefined ? ['--input-type=module-typescript'] : []
  const { stdout } = await promisify(execFile)(process.execPath, [...sourceFlags, ...typed, '-e', code], {
    cwd: root,
    env: { PATH: process.env.PATH ?? '', ...env },
  })
  return stdout
}
