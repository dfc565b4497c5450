// SPDX-License-Identifier: BSD-2-Clause
/* The triggers that a CNO keeps, for cno.c, cno_trigger.c and cno_wait.c. */
#ifndef CORE_CNO_TRIGGER_H
#define CORE_CNO_TRIGGER_H

#include "core/event/cno.h"

/* The EVD that triggered first. Its trigger is used up. There is one. Locked. */
DAT_EVD_HANDLE core_cno_take_locked(struct core_cno *cno);
/* Releases all waiters, naming no EVD. */
void core_cno_release_all_locked(struct core_cno *cno);
/* Has the agent called, if one is armed; it is disarmed by that (CNO-CREATE-07). */
void core_cno_call_agent_locked(struct core_cno *cno, DAT_EVD_HANDLE evd);
/* The consumer no longer sleeps elsewhere: ia->sleepers does not count it. */
void core_cno_wakes(struct core_cno *cno);

#endif
