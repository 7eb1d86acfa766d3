/** A process that opens its store when it is told to, and writes a checkpoint. */
import { testCheckpoint } from '@botmesh/sql-store/testing'
import { onCommand, tell } from '../../../test/support/replica-side.js'
import { PostgresStore } from '../src/index.js'

const { STORE_URL: url, PREFIX: prefix = '', N: n } = process.env
const store = new PostgresStore({ url, prefix, connections: 2 })
onCommand(() => void store.setCheckpoint(`chat ${n}`, testCheckpoint('1:1')).then(() => tell('written')))
tell('ready')
