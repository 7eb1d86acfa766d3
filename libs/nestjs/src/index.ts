/** Public face of `@botmesh/nestjs`. */
export { BotmeshModule } from './botmesh.module.js'
export type {
  BotmeshModuleAsyncOptions,
  BotmeshModuleExtras,
  BotmeshModuleOptions,
  BotmeshOptions,
  BotmeshOptionsFactory,
  HealthOptions,
  WebhookOptions,
} from './options.js'
export {
  DEFAULT_BOT,
  getBotToken,
  getCheckpointStoreToken,
  getCoordinatorToken,
  InjectBot,
  InjectCheckpointStore,
  InjectCoordinator,
} from './tokens.js'
export { Flow, Persistent, Step, type FlowDecoratorOptions } from './decorators/flow.js'
export {
  BeforeMessage,
  Command,
  Conversation,
  Hears,
  OnMessage,
  type CommandDecoratorOptions,
  type ConversationDecoratorOptions,
  type HandlerOptions,
} from './decorators/handlers.js'
export { LeaderOnly, type LeaderOnlyOptions } from './decorators/leader-only.js'
export { LeaderJobs } from './schedule/leader-jobs.js'
export type { BotSelection } from './decorators/metadata.js'
export { BotmeshHealthIndicator, type IndicatorResult } from './health/botmesh-health.indicator.js'
export type { BotReport, HealthBody } from './health/health-report.js'
export { nestLogger } from './nest-logger.js'
