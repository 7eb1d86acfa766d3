/**
 * How much a package may take on disk: `ownKiB` is the package itself, `allKiB` everything that installing it alone
 * brings. A change that needs more raises the limit here, in the same commit, so that somebody sees it: `ownKiB` is looked
 * at by `npm test`, both by `npm run test:packages`.
 *
 * @type {Record<string, { ownKiB: number, allKiB: number }>}
 */
export const SIZE_LIMITS = {
  '@botmesh/baileys': { ownKiB: 400, allKiB: 15_500 },
  '@botmesh/core': { ownKiB: 2800, allKiB: 13_400 },
  '@botmesh/discord': { ownKiB: 450, allKiB: 32_500 },
  '@botmesh/email': { ownKiB: 400, allKiB: 26_500 },
  '@botmesh/instagram': { ownKiB: 100, allKiB: 14_000 },
  '@botmesh/messenger': { ownKiB: 100, allKiB: 14_000 },
  '@botmesh/meta': { ownKiB: 400, allKiB: 13_800 },
  '@botmesh/mongo-store': { ownKiB: 350, allKiB: 21_500 },
  '@botmesh/mysql-store': { ownKiB: 60, allKiB: 22_000 },
  '@botmesh/nestjs': { ownKiB: 350, allKiB: 21_500 },
  '@botmesh/postgres-store': { ownKiB: 60, allKiB: 21_000 },
  '@botmesh/redis-store': { ownKiB: 740, allKiB: 15_500 },
  '@botmesh/sql-store': { ownKiB: 450, allKiB: 17_500 },
  '@botmesh/sqlite-store': { ownKiB: 45, allKiB: 39_500 },
  '@botmesh/telegram': { ownKiB: 300, allKiB: 16_700 },
  '@botmesh/webchat': { ownKiB: 300, allKiB: 13_700 },
}
