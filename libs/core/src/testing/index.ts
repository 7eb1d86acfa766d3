/** Public face of `@botmesh/core/testing`: doubles and conformance suites for those who write against Botmesh. */
export { RecordingSink, type RecordedLog } from './recording-sink.js'
export { ManualClock } from './manual-clock.js'
export { PausableClock } from './pausable-clock.js'
export { SeededRandom, seedOfRun } from './seeded-random.js'
export {
  FakePlatform,
  FakeProvider,
  connectionRefused,
  type FakeProviderOptions,
  type FakeSend,
  type SendFailure,
} from './fake-provider.js'
export {
  MemoryBackend,
  MemoryCoordinationHub,
  MemoryCoordinator,
  type MemoryCoordinationHubOptions,
  type MemoryCoordinatorOptions,
} from '../memory/index.js'
export { CallFaults, type CallFaultOptions } from './call-faults.js'
export {
  FaultyBackend,
  randomFaults,
  type BackendCall,
  type Fault,
  type FaultPlan,
} from './faulty-backend.js'
export { coordinatorSuite } from './conformance/coordinator.suite.js'
export { memoryBed } from './conformance/memory-bed.js'
export type {
  CoordinationBed,
  CoordinatorFixture,
  CoordinatorGuarantees,
} from './conformance/coordination-bed.js'
export { rejection, type Matchers, type TestApi } from './conformance/test-api.js'
export { storeSuite } from './conformance/store.suite.js'
export { cutSuite, type CutFixture, type CutLine } from './conformance/cut.suite.js'
export { chainOfCommits, testCheckpoint, testMessage, type Chain } from './conformance/chain.js'
export { sharedStateSuite } from './conformance/shared-state.suite.js'
export { memoryStoreBed } from './conformance/memory-store-bed.js'
export type { StoreBed, StoreFixture, StoreGuarantees } from './conformance/store-bed.js'
export { differential, type DifferentialOptions } from './differential.js'
export {
  providerSuite,
  type ProviderBed,
  type ProviderFixture,
  type ProviderGuarantees,
} from './conformance/provider.suite.js'
