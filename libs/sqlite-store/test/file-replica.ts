/** A process that opens a SQLite file when it is told to, and works on it until it is killed. */
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ConfigError } from '@botmesh/core'
import { chainOfCommits } from '@botmesh/sql-store/testing'
import { onCommand, tell } from '../../../test/support/replica-side.js'
import { SQLiteStore } from '../src/index.js'

const store = new SQLiteStore({ path: process.env['FILE'], synchronous: 'normal' })

async function count(times: number): Promise<void> {
  for (let n = 0; n < times;) {
    const user = await store.getUser('u')
    const before = Number(user?.data['count'] ?? 0)
    if ((await store.setUserIf('u', { count: before + 1 }, user?.revision ?? null)) !== null) n += 1
  }
  tell('counted')
}

/** As a user whom the file is closed to; one who is not root already is somebody like that. */
async function openAsNobody(): Promise<void> {
  // What opening loads is loaded by whoever may read it.
  const other = new SQLiteStore({ path: join(await mkdtemp(join(tmpdir(), 'botmesh-')), 'loading.db') })
  await other.open()
  await other.close()
  if (process.getuid?.() === 0) process.seteuid?.(65_534)
  await store.open().then(
    () => tell('up'),
    (error: ConfigError) =>
      tell('refused', { error: { code: error.code, message: error.message, details: error.details } }),
  )
}

onCommand((command) => {
  if (command['do'] === 'open') void store.open().then(() => tell('up'))
  else if (command['do'] === 'open-as-nobody') void openAsNobody()
  else if (command['do'] === 'count') void count(Number(command['times']))
  else void chainOfCommits(store, 'k', 7, 100_000, (n) => tell('committed', { n }))
})
tell('ready')
