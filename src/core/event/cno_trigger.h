// SPDX-License-Identifier: BSD-2-Clause
/* The EVDs of a CNO, and the queue of those that have triggered it. */
#ifndef CORE_CNO_TRIGGER_H
#define CORE_CNO_TRIGGER_H

#include "core/event/cno.h"

/* Removes the first trigger from the queue, which is not empty, and returns its EVD. Locked. */
DAT_EVD_HANDLE core_cno_pop_trigger_locked(struct core_cno *cno);
/* Releases all waiters, without an EVD. */
void core_cno_release_all_locked(struct core_cno *cno);
/* Has the agent called, if one is armed, and disarms it (CNO-CREATE-07). */
void core_cno_call_agent_locked(struct core_cno *cno, DAT_EVD_HANDLE evd);
/* Removes the consumer from ia->sleepers, if it is counted there. */
void core_cno_remove_sleeper(struct core_cno *cno);

/* The transport was armed for its consumer: counts it in ia->sleepers until it is notified. */
void core_cno_add_sleeper(struct core_cno *cno);
/* Has the next dequeue from an empty EVD arm the transport. The consumer no longer counts as a
 * sleeper. */
void core_cno_request_arm(struct core_cno *cno);
/* The caller, who has incremented `busy`, leaves the CNO. */
void core_cno_idle_locked(struct core_cno *cno);
/* Counts an EVD that will use the CNO: core_cno_enter or core_cno_disuse follows. NULL: the handle
 * is not a live CNO of the instance. */
struct core_cno *core_cno_use(DAT_CNO_HANDLE handle, struct core_ia *ia);
/* Reverts core_cno_use for an EVD that was not attached after all. */
void core_cno_disuse(struct core_cno *cno);
/* Attaches the EVD, which is locked, or not yet known to the consumer. */
void core_cno_enter(struct core_cno *cno, struct core_evd *evd);
/* A trigger for core_cno_leave; NULL: no memory. */
struct core_trigger *core_cno_new_trigger(void);
/* Detaches the EVD, which is locked. A trigger that is still queued stays in the queue
 * (EVD-MODIFY-CNO-03, -05): `spare` takes its place. Frees `spare` if it is not needed. */
void core_cno_leave(struct core_cno *cno, struct core_evd *evd, struct core_trigger *spare);
/* The EVD was freed. If it was the last one, waiters and agent are notified (CNO-WAIT-14, -15). No
 * lock held. */
void core_cno_evd_freed(struct core_cno *cno, struct core_evd *evd);
/* Removes the triggers that a freed EVD left in CNOs that it used before. No lock held. */
void core_cno_drop_evd(struct core_ia *ia, DAT_EVD_HANDLE evd);
/* A notifying event arrived at the EVD, which is locked. */
void core_cno_trigger(struct core_cno *cno, struct core_evd *evd);
/* Requeues a trigger of the EVD, which is locked: the waiter that it was given to was cancelled.
 * Without memory for that, triggers the CNO that the EVD uses now. */
void core_cno_return_trigger(struct core_cno *cno, struct core_evd *evd);

#endif
