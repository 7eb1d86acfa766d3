/** Every provider and controller of the application, with its class: what the loaders look through. */
import type { DiscoveryService } from '@nestjs/core'
import type { AnyClass } from '../decorators/metadata.js'

type InstanceWrapper = ReturnType<DiscoveryService['getProviders']>[number]

export interface Found {
  type: AnyClass
  /** Null unless the class is a singleton: request-scoped and transient ones have no instance of their own. */
  instance: object | null
  module: string
}

export function scanProviders(discovery: DiscoveryService): Found[] {
  const found = new Map<object, Found>()
  for (const wrapper of [...discovery.getProviders(), ...discovery.getControllers()]) {
    if (wrapper.isAlias) continue
    const one = inspect(wrapper)
    if (one !== null) found.set(one.instance ?? wrapper, one)
  }
  return [...found.values()]
}

function inspect(wrapper: InstanceWrapper): Found | null {
  const module = wrapper.host?.name ?? 'unknown'
  const singleton = wrapper.isDependencyTreeStatic() && !wrapper.isTransient
  if (!singleton) return isClass(wrapper.metatype) ? { type: wrapper.metatype, instance: null, module } : null
  const instance: unknown = wrapper.instance
  if (typeof instance !== 'object' || instance === null) return null
  // From the instance, not the wrapper: factories and values have no class of their own there.
  const type: unknown = Reflect.get(instance, 'constructor')
  return isClass(type) && instance instanceof type ? { type, instance, module } : null
}

function isClass(value: unknown): value is AnyClass {
  return typeof value === 'function' && typeof value.prototype === 'object' && value.prototype !== null
}
