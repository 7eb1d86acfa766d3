/** Public face of `@botmesh/baileys`. */
export {}
