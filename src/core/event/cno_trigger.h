// SPDX-License-Identifier: BSD-2-Clause
/* The queue of triggers of a CNO, for cno.c, cno_trigger.c and cno_wait.c. */
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

#endif
