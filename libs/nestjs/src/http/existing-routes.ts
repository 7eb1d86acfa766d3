/** Does the application itself answer GET for a path? Looks into the router of Express or Fastify. */
import type { HttpAdapterHost } from '@nestjs/core'

/** A layer of Express 5's router. */
interface ExpressLayer {
  match(path: string): boolean
  route?: { methods: Record<string, boolean | undefined> }
}

/** No application has it; what matches it matches everything, such as the fall-back of a single-page application. */
const NOWHERE = '/botmesh/no-such-path/4c1f'

/** @returns false where the router cannot be looked into. */
export function servesGet(http: HttpAdapterHost['httpAdapter'], path: string): boolean {
  const instance: unknown = http.getInstance()
  if (typeof instance !== 'function' && typeof instance !== 'object') return false
  const { hasRoute, router } = instance as {
    hasRoute?: (route: { url: string; method: string }) => boolean
    router?: { stack?: ExpressLayer[] }
  }
  if (typeof hasRoute === 'function') return hasRoute.call(instance, { url: path, method: 'GET' })
  return (router?.stack ?? []).some(
    (layer) => answersGet(layer) && layer.match(path) && !layer.match(NOWHERE),
  )
}

function answersGet({ route }: ExpressLayer): boolean {
  return route === undefined || route.methods.get === true || route.methods._all === true
}
