/** Messenger as a transport: webhooks in, Graph API out. Not exclusive (P2). What it does is in `@botmesh/meta/page`. */
import { PageProvider } from '@botmesh/meta/page'
import { readOptions, type MessengerOptions } from './options.js'

export class MessengerProvider extends PageProvider {
  /** @throws ConfigError */
  constructor(options: MessengerOptions) {
    super(readOptions(options))
  }
}
