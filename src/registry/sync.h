// SPDX-License-Identifier: BSD-2-Clause
/*
 * The two locks of the registry and what fork does to them. Their order is: serializer, then lock.
 *
 * The lock guards the lists of registrations, open adapters and built-in entries; it is held for
 * a few instructions and never across a call out of the registry. The serializer lets one thread
 * at a time read dat.conf, load libraries and run dat_provider_init and dat_provider_fini
 * (PROV-INIT-14, PROV-FINI-10); it may be entered again by its owner, because those functions may
 * call the registry.
 */
#ifndef REGISTRY_SYNC_H
#define REGISTRY_SYNC_H

/* Neither may be left behind by a cancelled thread: both hold cancellation off until released. */
void registry_lock(void);
void registry_unlock(void);

void registry_serializer_enter(void);
void registry_serializer_exit(void);

/* Sleep until registry_changed_locked() is called; the lock is released meanwhile. */
void registry_wait_locked(void);
void registry_changed_locked(void);

#endif
