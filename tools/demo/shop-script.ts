/**
 * Which form of the shop the demo runs: the built one, or, if this process itself takes `@botmesh/*` from source (as
 * tests do, which must not depend on the last build), the sources. Never both in one process.
 */
export const fromSource = process.execArgv.includes('--conditions=@botmesh/source')

export const shopScript = new URL(
  fromSource ? '../../apps/tienda/src/main.ts' : '../../apps/tienda/dist/main.js',
  import.meta.url,
)
