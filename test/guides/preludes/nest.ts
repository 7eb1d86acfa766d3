/** What the blocks about Nest take for granted. */
import type { INestApplication } from '@nestjs/common'
import { MessageContext, StepContext } from '@botmesh/core'
import { Flow } from '@botmesh/nestjs'

export { Controller, Get, Injectable, Module, type DynamicModule, type OnModuleInit } from '@nestjs/common'
export { NestFactory } from '@nestjs/core'
export { EventEmitterModule, OnEvent } from '@nestjs/event-emitter'
export { Cron, ScheduleModule } from '@nestjs/schedule'
export { Test } from '@nestjs/testing'
export { Bot, Coordinator, MemoryStore, type Provider } from '@botmesh/core'
export { BotmeshHealthIndicator, BotmeshModule, Command, Conversation, Flow, Hears } from '@botmesh/nestjs'
export { InjectBot, LeaderOnly, OnMessage, Persistent, Step, nestLogger } from '@botmesh/nestjs'
export { MetaProvider } from '@botmesh/meta'
export { RedisStore } from '@botmesh/redis-store'
export { TelegramProvider } from '@botmesh/telegram'
export { WebchatProvider } from '@botmesh/webchat'
export { Stock } from './stock.js'
export { MessageContext, StepContext }

export interface Order {
  size: string
}

@Flow('order')
export class OrderFlow {}

export declare const app: INestApplication
export { provider, store, coordinator, bot } from './common.js'
