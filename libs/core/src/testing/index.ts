/** Public face of `@botmesh/core/testing`: doubles and conformance suites for those who write against Botmesh. */
export { RecordingSink, type RecordedLog } from './recording-sink.js'
