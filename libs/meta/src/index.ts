/** Public face of `@botmesh/meta`. */
export {}
