// SPDX-License-Identifier: BSD-2-Clause
/*
 * What dat_stat reads of this process (shared/stat.h): a table of the layout of the objects, and
 * the note by which it is found. Nothing here runs.
 */
#include "shared/stat.h"

#include <stddef.h>

#include "core/base/handle.h"
#include "core/base/instance.h"
#include "core/conn/sp.h"
#include "core/ep/ep.h"
#include "core/event/evd.h"
#include "core/mem/mem.h"
#include "core/srq/srq.h"

#define AT(kind, name, type, member)                                                               \
	[OPENDAT_STAT_##kind##_##name] = {offsetof(type, member), sizeof(((type *)0)->member)},

/* Hidden, and not static: the note refers to it. */
extern const struct opendat_stat core_stat;

__attribute__((used)) const struct opendat_stat core_stat = {
	.magic = OPENDAT_STAT_MAGIC,
	.size = sizeof(struct opendat_stat),
	.cell_size = CORE_CELL_SIZE,
	.release = CORE_RELEASE,
	.arena = &core_cells.base,
	.cells = &core_cells.used,
	.members = {AT(CELL, TAG, struct core_handle, tag)
			    AT(CELL, GENERATION, struct core_handle, generation)
				    AT(CELL, OBJECT, struct core_handle, object)
					    AT(CELL, INSTANCE, struct core_handle, ia)
						    AT(IA, NAME, struct core_ia, attr.adapter_name)
							    AT(IA, DEVICE, struct core_ia, device)
								    AT(IA, ADDRESS, struct core_ia,
								       address)
									    AT(EP, STATE, struct core_ep, state) AT(EP, PATH, struct core_ep, path) AT(EP, PEER, struct core_ep, remote_address) AT(EP, PEER_PORT, struct core_ep, remote_port) AT(EP, LOCAL_PORT, struct core_ep, local_port) AT(EP, CONNECTIONS, struct core_ep, counts.connections) AT(EP,
																																											  RECV_EVD,
																																											  struct core_ep, recv_evd) AT(EP, REQUEST_EVD, struct core_ep, request_evd) AT(EP,
																																																					CONNECT_EVD,
																																																					struct
																																																					core_ep,
																																																					connect_evd) AT(EP,
																																																							SRQ,
																																																							struct core_ep, srq) AT(EP, REQUEST_ROOM, struct core_ep, req.capacity) AT(EP, REQUEST_HEAD, struct core_ep, req.head) AT(EP,
																																																																						  REQUEST_TAIL, struct core_ep, req.tail) AT(EP, RECV_ROOM, struct core_ep, recv.capacity) AT(EP, RECV_HEAD, struct core_ep, recv.head) AT(EP,
																																																																																							   RECV_TAIL, struct core_ep, recv.tail) AT(EP,
																																																																																												    OLD_REQUESTS, struct core_ep, counts.old_requests) AT(EP, OLD_RECVS, struct core_ep, counts.old_recvs) AT(EP,
																																																																																																									      WRITES, struct core_ep, counts.posted[CORE_OP_RDMA_WRITE]) AT(EP,
																																																																																																																	    READS,
																																																																																																																	    struct core_ep, counts.posted[CORE_OP_RDMA_READ]) AT(EP,
																																																																																																																								 BINDS, struct core_ep, counts.posted[CORE_OP_BIND]) AT(EP,
																																																																																																																															SEND_BYTES, struct core_ep, counts.bytes[CORE_OP_SEND]) AT(EP, WRITE_BYTES, struct core_ep, counts.bytes[CORE_OP_RDMA_WRITE]) AT(EP,
																																																																																																																																															 READ_BYTES,
																																																																																																																																															 struct core_ep, counts.bytes[CORE_OP_RDMA_READ]) AT(EP,
																																																																																																																																																					     RECV_BYTES,
																																																																																																																																																					     struct core_ep, counts.recv_bytes) AT(EP, SRQ_RECVS, struct core_ep, counts.srq_recvs) AT(EP, FAILED, struct core_ep, counts.failed) AT(EP, FLUSHED, struct core_ep, counts.flushed) AT(EP,
																																																																																																																																																																												     WAKEUPS,
																																																																																																																																																																												     struct
																																																																																																																																																																												     core_ep,
																																																																																																																																																																												     counts.wakeups) AT(EVD,
																																																																																																																																																																															ROOM, struct core_evd, capacity) AT(EVD,
																																																																																																																																																																																			    HEAD, struct core_evd, head) AT(EVD, TAIL, struct core_evd, tail) AT(EVD,
																																																																																																																																																																																												 FLAGS,
																																																																																																																																																																																												 struct core_evd, flags) AT(EVD,
																																																																																																																																																																																															    HAS_WAITER, struct core_evd, has_waiter) AT(EVD, OVERFLOWED, struct core_evd, is_overflowed) AT(EVD,
																																																																																																																																																																																																											    WAKEUPS, struct core_evd, wakeups) AT(SRQ,
																																																																																																																																																																																																																  ROOM,
																																																																																																																																																																																																																  struct
																																																																																																																																																																																																																  core_srq,
																																																																																																																																																																																																																  queue.capacity) AT(SRQ, HEAD, struct core_srq,
																																																																																																																																																																																																																		     queue.head) AT(SRQ,
																																																																																																																																																																																																																				    TAIL,
																																																																																																																																																																																																																				    struct core_srq, queue.tail) AT(SRQ, DEVICE, struct core_srq, transport) AT(SRQ, DEVICE_AVAILABLE, struct core_srq, device.available)
										    AT(SRQ, OUTSTANDING, struct core_srq, outstanding) AT(SRQ, LOW_WATERMARK, struct core_srq, low_watermark)
											    AT(SRQ,
											       ENDPOINTS,
											       struct core_srq,
											       users) AT(SRQ, WAITING, struct core_srq, waiting)
												    AT(LMR, LENGTH, struct core_lmr, length)
													    AT(LMR, PRIVILEGES, struct core_lmr, priv)
														    AT(LMR, BOUND, struct core_lmr,
														       bound)
															    AT(SP, QUALIFIER, struct core_sp, conn_qual)},
};

/* The offsets are stored in 16 bits. */
#define CHECK(type) _Static_assert(sizeof(struct type) <= 0x4000, "dat_stat reads it whole")
CHECK(core_ia);
CHECK(core_ep);
CHECK(core_evd);
CHECK(core_srq);
CHECK(core_lmr);
CHECK(core_sp);

/* The distance to the table is known when the library is linked, and needs no relocation. */
__asm__(".pushsection .note.opendat, \"a\", %note\n"
	".balign 4\n"
	".long 8, 8, 0x0da7\n" /* OPENDAT_STAT_NOTE_TYPE */
	".asciz \"OpenDAT\"\n"
	"1: .quad core_stat - 1b\n"
	".popsection\n");
