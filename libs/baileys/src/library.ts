/** Baileys, which is loaded when it is needed: it is an optional peer dependency. */
export type Library = typeof import('@whiskeysockets/baileys')
