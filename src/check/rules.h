// SPDX-License-Identifier: BSD-2-Clause
/*
 * The rules that libdat-check tests, in one table. dat_info --checks prints it.
 *
 * RULE(identifier, name, level, requirement, manual page, what is reported)
 *
 * FAULT: the program breaks a rule of the specification, or will lose data or events. ADVICE: it works
 * here and may not work with another provider; only DAT_CHECK=all reports it.
 */
#ifndef CHECK_RULES_H
#define CHECK_RULES_H

#define CHECK_RULES(RULE)                                                                          \
	RULE(SEND_CHANGED, "send-changed", FAULT, "EP-RDMAW-14", "dat_ep_post_send",               \
	     "the buffer of a Send or an RDMA Write changed before its completion")                \
	RULE(RECV_WRITTEN, "recv-written", FAULT, "EP-RECV-09", "dat_ep_post_recv",                \
	     "the program wrote into the buffer of a posted Receive")                              \
	RULE(RECV_OVERLAP, "recv-overlap", FAULT, "EP-RECV-09", "dat_ep_post_recv",                \
	     "two posted Receives share bytes")                                                    \
	RULE(LMR_IN_USE, "lmr-in-use", FAULT, "LMR-FREE-06", "dat_lmr_free",                       \
	     "a region was freed while requests that use it were outstanding")                     \
	RULE(LMR_UNMAPPED, "lmr-unmapped", FAULT, "LMR-USE-14", "dat_lmr_create",                  \
	     "memory was unmapped while it was registered")                                        \
	RULE(IOV_OUTSIDE, "iov-outside", FAULT, "LMR-USE-01", "DAT_LMR_TRIPLET",                   \
	     "a segment is not inside its region")                                                 \
	RULE(LMR_KEY, "lmr-key", FAULT, "LMR-USE-04", "DAT_LMR_TRIPLET",                           \
	     "a segment has the key of no region, or of one that was freed")                       \
	RULE(REMOTE_ACCESS, "remote-access", FAULT, "LMR-USE-06", "DAT_RMR_TRIPLET",               \
	     "the peer refused an RDMA operation")                                                 \
	RULE(RMR_IN_USE, "rmr-in-use", FAULT, "DTO-100", "dat_rmr_free",                           \
	     "a window was freed or bound again before its bind had completed")                    \
	RULE(RMR_EARLY, "rmr-early", FAULT, "RMR-BIND-11", "dat_rmr_bind",                         \
	     "the key of a window was sent over another endpoint before its bind had completed")   \
	RULE(EVD_OVERFLOW, "evd-overflow", FAULT, "DTO-115", "dat_evd_create",                     \
	     "more events are outstanding than the EVD can hold")                                  \
	RULE(ALL_SUPPRESSED, "all-suppressed", ADVICE, "DTO-16", "DAT_COMPLETION_FLAGS",           \
	     "the request queue is full of requests that give no event")                           \
	RULE(SUPPRESSED_USED, "suppressed-used", ADVICE, "EP-RDMAW-14", "DAT_COMPLETION_FLAGS",    \
	     "memory of a suppressed request was used before a later completion")                  \
	RULE(EVENTS_LEFT, "events-left", FAULT, "EVD-FREE-02", "dat_evd_free",                     \
	     "an EVD was freed with completions that were never taken")                            \
	RULE(RECV_SHORT, "recv-short", FAULT, "EP-RECV-16", "dat_ep_post_recv",                    \
	     "a message was longer than its Receive")                                              \
	RULE(RECV_NONE, "recv-none", ADVICE, "DTO-104", "dat_ep_post_recv",                        \
	     "a connected endpoint or an SRQ had no Receive for a while")                          \
	RULE(COOKIE_TWICE, "cookie-twice", ADVICE, "EP-RDMAW-13", "DAT_CONTEXT",                   \
	     "two outstanding requests of an endpoint have the same cookie")                       \
	RULE(LEFT_OPEN, "left-open", FAULT, "IA-CLOSE-04", "dat_ia_close",                         \
	     "an object was left when its instance was to be closed gracefully")                   \
	RULE(CLOSED_OVER, "closed-over", ADVICE, "IA-CLOSE-07", "dat_ia_close",                    \
	     "an object was destroyed with its instance")                                          \
	RULE(USED_FREED, "used-freed", FAULT, "GEN-16", "DAT_HANDLE",                              \
	     "a call was made with the handle of an object that was freed")                        \
	RULE(TWO_WAITERS, "two-waiters", FAULT, "EVD-WAIT-16", "dat_evd_wait",                     \
	     "two threads waited on one EVD")                                                      \
	RULE(BAD_STATE, "bad-state", FAULT, "EP-STATE-01", "DAT_EP_STATE",                         \
	     "a call was made in a state that forbids it")                                         \
	RULE(CR_UNANSWERED, "cr-unanswered", FAULT, "IA-CLOSE-06", "dat_cr_accept",                \
	     "a connection request was neither accepted nor rejected")                             \
	RULE(CONNECTED, "not-disconnected", ADVICE, "EP-FREE-19", "dat_ep_disconnect",             \
	     "an endpoint was freed or its instance closed while it was connected")                \
	RULE(WRITE_AFTER_READ, "write-after-read", FAULT, "DTO-42", "DAT_COMPLETION_FLAGS",        \
	     "an RDMA Read is still filling what a request sends, or reading what it writes")      \
	RULE(TWO_THREADS, "two-threads", FAULT, "GEN-25", "opendat",                               \
	     "two threads were in calls on one object that must not overlap")                      \
	RULE(LARGE_COUNT, "large-count", ADVICE, "IA-QUERY-10", "DAT_IA_ATTR",                     \
	     "a number is above what common RDMA devices have")                                    \
	RULE(ZERO_LENGTH, "zero-length", ADVICE, "LMR-CREATE-20", "dat_lmr_create",                \
	     "a region of no bytes was asked for")                                                 \
	RULE(MIXED_EVD, "mixed-evd", ADVICE, "EVD-STREAM-01", "dat_evd_create",                    \
	     "an EVD takes completions and connection events")

#define CHECK_RULE_IDENTIFIER(identifier, name, level, row, page, text) CHECK_##identifier,
enum check_rule { CHECK_RULES(CHECK_RULE_IDENTIFIER) CHECK_RULE_COUNT };
#undef CHECK_RULE_IDENTIFIER

#endif
