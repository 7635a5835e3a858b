import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { constants, Script } from 'node:vm'

/**
 * Starts the agent's bundle, which lies beside this file, from V8's code cache if there is one: compiling it is most of
 * a start. `--make-cache FILE AGENT` writes that cache: the bundle plays one turn by itself, so that what a turn needs is
 * compiled when the cache is taken, and an agent that cannot get through a turn makes no image. Bun has no such cache and takes the bundle as it is.
 */
const folder = dirname(process.argv[1] ?? '')
const [, , option, cacheFile, agentFile] = process.argv
const making = option === '--make-cache' && cacheFile !== undefined
const agent = (making ? agentFile : undefined) ?? join(folder, 'pi-agent.cjs')
const load = createRequire(agent)

if (process.versions.bun === undefined) startCompiled()
else load(agent)

function startCompiled(): void {
  const source = readFileSync(agent, 'utf8')
  const cachedData = making ? undefined : cacheOf(join(folder, 'pi-agent.cache'))
  // What a module of Node's is wrapped in: the cache holds it with this text.
  const script = new Script(`(function (exports, require, module, __filename, __dirname) {${source}\n})`, {
    filename: agent,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    ...(cachedData === undefined ? {} : { cachedData }),
  })
  if (script.cachedDataRejected) process.stderr.write('pi worker: the code cache is of another runtime\n')
  if (making) {
    process.argv.splice(2, 3, '--warm-up')
    process.once('exit', (code) => {
      if (code === 0) writeFileSync(cacheFile, script.createCachedData())
    })
  }
  const module = { exports: {} }
  script.runInThisContext()(module.exports, load, module, agent, folder)
}

function cacheOf(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch {
    return undefined
  }
}
