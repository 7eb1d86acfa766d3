/** Public face of `@botmesh/webchat`. */
export {}
