// SPDX-License-Identifier: BSD-2-Clause
/*
 * The two locks of the registry. Their order is: serializer, then lock.
 *
 * The lock guards the lists of registrations, open instances and built-in entries. It is held for a
 * few instructions and never during a call out of the registry. The serializer lets one thread at a
 * time read dat.conf, load libraries and run dat_provider_init and dat_provider_fini (PROV-INIT-14,
 * PROV-FINI-10). Its owner may enter it again, because those functions may call the registry.
 */
#ifndef REGISTRY_SYNC_H
#define REGISTRY_SYNC_H

/* Both disable cancellation until they are released, so that no cancelled thread holds one. */
void registry_lock(void);
void registry_unlock(void);

void registry_serializer_enter(void);
void registry_serializer_exit(void);

/* Sleeps until registry_changed_locked() is called. The lock is released meanwhile. */
void registry_wait_locked(void);
void registry_changed_locked(void);

#endif
