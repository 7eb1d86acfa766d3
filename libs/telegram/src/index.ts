/** Public face of `@botmesh/telegram`. */
export {}
