/** What applications, and the bot, take from conversations. */
export { ConversationContext, Directive, StepContext } from './contexts.js'
export type { AskOptions, ContextRegistry, HandlerContext, Validator, Verdict } from './contexts.js'
export { defineFlow } from './definitions.js'
export type {
  ConversationDefinition,
  FlowDefinition,
  FlowTrigger,
  Question,
  StepDefinition,
} from './definitions.js'
export { FlowBuilder, type FlowBuilderOptions, type FormField } from './flow-builder.js'
export { FlowRegistry } from './registry.js'
export { createConversations } from './engine.js'
