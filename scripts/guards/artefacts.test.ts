import { expect, test } from 'vitest'
import { checkPacked } from './artefacts.ts'

const good: [string, string][] = [
  ['package.json', '{"name":"@sandbox/docker-worker","dependencies":{"@sandbox/protocol":"^0.1.0"}}'],
  ['README.md', ''],
  ['LICENSE', ''],
  ['dist/index.js', "import 'dockerode'"],
  ['dist/index.d.ts', ''],
  ['dist/guest/sealed.js', "import http from 'node:http'"],
]

function problems(change: (packed: Map<string, string>) => void): string[] {
  const packed = new Map(good)
  change(packed)
  return checkPacked('@sandbox/docker-worker', packed).map((one) => `${one.where} ${one.problem}`)
}

test('guard D is content with what was meant', () => {
  expect(problems(() => {})).toEqual([])
})

test.each<[string, (packed: Map<string, string>) => void]>([
  ['it still holds @sandbox/source', (p) => p.set('package.json', '{"exports":{"@sandbox/source":"x"}}')],
  ['it still holds workspace:', (p) => p.set('package.json', '{"dependencies":{"a":"workspace:^"}}')],
  ['it needs @sandbox/testing', (p) => p.set('package.json', '{"dependencies":{"@sandbox/testing":"1"}}')],
  ['src/index.ts it is packed', (p) => p.set('src/index.ts', '')],
  ['dist/a.test.js a test is packed', (p) => p.set('dist/a.test.js', '')],
  ['README.md it is missing', (p) => p.delete('README.md')],
  ['a program that runs inside holds undici', (p) => p.set('dist/guest/sealed.js', "import 'undici'")],
  ['no guest', (p) => p.delete('dist/guest/sealed.js')],
])('guard D sees a planted violation: %s', (expected, plant) => {
  expect(problems(plant).join('\n')).toContain(expected)
})
