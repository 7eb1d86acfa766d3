/** What is said when the layout of keys and the kind of server do not go together (S3). */
import { ConfigError } from '@botmesh/core'

export function clusterRefusal(): ConfigError {
  return new ConfigError(
    "This is a Redis Cluster, and the layout of keys is the default one ('single'), which needs a single server. Give { layout: 'cluster' }, or use a standalone or Sentinel-managed Redis.",
    { option: 'layout', value: 'single', accepted: "'cluster' for a Redis Cluster" },
  )
}

/** @param place `host:port`. */
export function notACluster(place: string): ConfigError {
  return new ConfigError(
    `Option "layout" is 'cluster', but the Redis at ${place} is not part of a cluster. Leave "layout" out ('single'), or name nodes of a cluster.`,
    { option: 'layout', value: 'cluster', accepted: "'single' for a standalone or Sentinel-managed Redis" },
  )
}
