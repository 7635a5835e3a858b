import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Options } from 'tsup'

type Plugin = NonNullable<Options['esbuildPlugins']>[number]

/**
 * Parts of the agent that a worker never uses: clients of other model services, the terminal's highlighting, and the
 * loader of extensions from disk. They are half of the bundle and a quarter of its memory.
 */
const ABSENT =
  /^(openai|undici|jiti|highlight\.js|lovely-mermaid|google-auth-library|@google\/genai|@aws-sdk\/[^/]+|@smithy\/[^/]+)(\/|$)/

/** Stands in for them: may be imported and set up, but using it fails in words. */
const STAND_IN = `
function Absent() {}
module.exports = new Proxy(Absent, {
  get: (target, name) => name === '__esModule' || name === 'then' ? undefined : name === 'prototype' ? target.prototype : module.exports,
  apply: () => module.exports,
  construct() { throw new Error('This part of the agent is not in the worker.') },
})
`

/** Leaves the parts out that a worker never uses. */
export const absentParts: Plugin = {
  name: 'absent-parts',
  setup(build) {
    build.onResolve({ filter: ABSENT }, () => ({ path: 'absent', namespace: 'absent' }))
    build.onLoad({ filter: /.*/, namespace: 'absent' }, () => ({ contents: STAND_IN, loader: 'js' }))
  },
}

/** Hands over the licences of every package that is in the bundle. */
export function licenceTexts(write: (text: string) => void): Plugin {
  return {
    name: 'licences',
    setup(build) {
      build.initialOptions.metafile = true
      build.onEnd(({ metafile }) => {
        if (metafile === undefined) return
        const folders = Object.keys(metafile.inputs).flatMap((path) => packageFolder(path) ?? [])
        write(
          [...new Set(folders)]
            .sort()
            .map(licenceOf)
            .join(`\n${'-'.repeat(80)}\n\n`),
        )
      })
    },
  }
}

function packageFolder(path: string): string | undefined {
  const [folder] = /^.*\/node_modules\/(@[^/]+\/)?[^/]+/.exec(path) ?? []
  return folder
}

function licenceOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const file = readdirSync(folder).find((entry) => /^(licen[cs]e|copying)/i.test(entry))
  const text = file === undefined ? '' : readFileSync(resolve(folder, file), 'utf8').trim()
  const notice = join(folder, 'NOTICE')
  const more = existsSync(notice) ? `\n\n${readFileSync(notice, 'utf8').trim()}` : ''
  return `${name} ${version} (${license})\n\n${text}${more}\n`
}
