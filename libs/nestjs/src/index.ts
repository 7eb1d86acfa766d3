/** Public face of `@botmesh/nestjs`. */
export {}
