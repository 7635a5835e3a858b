const lowered = new URL('lowered.mjs', import.meta.url).href

/** What this process needs on Node 22 to run our sources as they are; later ones and Bun need nothing. */
const LOWERED =
  process.versions.bun === undefined && Number(process.versions.node.split('.')[0]) < 24
    ? ['--import', `data:text/javascript,import{register}from'node:module';register('${lowered}')`]
    : []

/** Arguments for a process of `process.execPath` that runs our sources, to stand before the program. */
export const sourceFlags: readonly string[] = ['--conditions=@sandbox/source', ...LOWERED]
