#!/bin/sh
# A rolling deploy with docker compose alone: builds, starts new replicas beside the old ones, waits until they are
# healthy, and stops the old ones one after the other, each with time to drain.
#
#   docker/rolling-deploy.sh [replicas]      default 2; COMPOSE may name another command, HEALTHY_SECONDS how long to wait
set -eu
replicas=${1:-2}
compose=${COMPOSE:-docker compose -f docker/compose.yaml}
limit=${HEALTHY_SECONDS:-60}

old=$($compose ps --quiet bot)
$compose build bot
$compose up --detach --no-deps --no-recreate --scale "bot=$(($(echo "$old" | grep -c . || true) + replicas))" bot

for id in $($compose ps --quiet bot); do
  case "$old" in *"$id"*) continue ;; esac
  waited=0
  until [ "$(docker inspect --format '{{.State.Health.Status}}' "$id")" = healthy ]; do
    waited=$((waited + 1))
    if [ "$waited" -gt "$limit" ]; then
      echo "replica $id is not healthy after $limit s; the old replicas go on, the new ones are stopped" >&2
      for new in $($compose ps --quiet bot); do
        case "$old" in *"$new"*) ;; *) docker stop "$new" >/dev/null && docker rm "$new" >/dev/null ;; esac
      done
      exit 1
    fi
    sleep 1
  done
done

for id in $old; do
  docker stop --time 20 "$id" >/dev/null
  docker rm "$id" >/dev/null
done
$compose ps bot
