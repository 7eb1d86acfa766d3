/** Public face of `@botmesh/redis-store`. */
export {}
