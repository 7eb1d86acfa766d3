/** Public face of `@botmesh/core`. */
export * from './contracts/index.js'
export { parseDuration, describeValue } from './kernel/duration.js'
export { refuseUnknownOptions, nearestName, requireOneOf, requireText } from './kernel/options.js'
export { chatKeyOf, parseChatKey, type ChatAddress } from './kernel/chat-key.js'
export { systemClock, systemRandom } from './runtime/system-clock.js'
