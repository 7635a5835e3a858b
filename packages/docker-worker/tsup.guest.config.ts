import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { defineConfig, type Options } from 'tsup'
import { absentParts, licenceTexts } from './pi-bundle.config.ts'

/**
 * Runs before the agent is loaded, which asks for the home of its account then: one without an entry in the user database
 * has none. Bun does not look at `HOME` again, so it is the question that is answered.
 */
const BEFORE_THE_AGENT = `
const __bundleUrl = require('node:url').pathToFileURL(__filename).href;
const __os = require('node:os'), __home = __os.homedir;
__os.homedir = () => { try { return __home() } catch { return __os.tmpdir() } };
`

const guest = { outDir: 'dist/guest', platform: 'node', target: 'node22' } as const

const whole: Options = {
  ...guest,
  noExternal: [/.*/],
  minify: true,
  splitting: false,
  treeshake: true,
  esbuildOptions(options) {
    options.conditions = ['@sandbox/source', 'module', 'node']
    options.legalComments = 'none'
  },
}

/** A rename, so that a program that reads the guest right now finds a whole one. */
function inOneStep(name: string): Pick<Options, 'outDir' | 'onSuccess'> {
  const draft = `dist/.guest-${process.pid}-${name}`
  return {
    outDir: draft,
    async onSuccess() {
      mkdirSync(guest.outDir, { recursive: true })
      renameSync(`${draft}/${name}`, `${guest.outDir}/${name}`)
      rmSync(draft, { recursive: true })
    },
  }
}

export default defineConfig([
  {
    ...whole,
    ...inOneStep('sealed.js'),
    entry: { sealed: 'src/guest/sealed/main.ts' },
    format: 'esm',
  },
  {
    ...whole,
    ...inOneStep('precheck.js'),
    entry: { precheck: 'src/guest/precheck/main.ts' },
    format: 'esm',
  },
  {
    ...whole,
    ...inOneStep('pi-start.cjs'),
    entry: { 'pi-start': 'src/guest/pi/start.ts' },
    format: 'cjs',
  },
  {
    ...whole,
    ...inOneStep('pi-agent.cjs'),
    entry: { 'pi-agent': 'src/guest/pi/main.ts' },
    format: 'cjs',
    // esbuild alone: a second pass by rollup costs a minute and saves nothing.
    treeshake: false,
    define: { 'import.meta.url': '__bundleUrl' },
    banner: { js: BEFORE_THE_AGENT },
    esbuildPlugins: [
      absentParts,
      licenceTexts((text) => {
        mkdirSync(guest.outDir, { recursive: true })
        writeFileSync(`${guest.outDir}/pi-licences.txt`, text)
      }),
    ],
  },
])
