/**
 * Two replicas of the shop under PM2 on one machine, each a process of its own on a port of its own (put a proxy in
 * front): `pm2 start docker/pm2/ecosystem.config.cjs`, deploys without a gap by `pm2 reload tienda-a tienda-b`, one
 * after the other. Not PM2's cluster mode: its processes would share a port, and one `REPLICA_ID`.
 */
const path = require('node:path')

const root = path.join(__dirname, '..', '..')

const replica = (name, port) => ({
  name: `tienda-${name}`,
  script: path.join(root, 'apps', 'tienda', 'dist', 'main.js'),
  cwd: root,
  exec_mode: 'fork',
  instances: 1,
  env: {
    NODE_ENV: 'production',
    PORT: String(port),
    REPLICA_ID: name,
    DURABILITY: '1',
    REDIS_URL: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
    WEBCHAT_SECRET: process.env.WEBCHAT_SECRET,
  },
  // Up means that the bot serves, not that the process exists.
  wait_ready: true,
  listen_timeout: 30_000,
  // Longer than drainMs (10 s): running turns finish, the leadership is resigned.
  kill_timeout: 15_000,
  max_memory_restart: '512M',
  exp_backoff_restart_delay: 200,
})

module.exports = { apps: [replica('a', 3001), replica('b', 3002)] }
