// SPDX-License-Identifier: BSD-2-Clause
/*
 * An open adapter and the objects that a connection needs: a protection zone, four EVDs and
 * registered buffers. Each step of connecting and disconnecting is one blocking call. The tools and
 * the programs in bench use these calls.
 *
 * A call returns 0 or a negative errno, after it has printed a message: -EIO a DAT call failed,
 * -ETIMEDOUT nothing happened in time, -ECONNRESET a transfer failed, -ECONNREFUSED the connection
 * failed. -EINTR, without a message: the user stopped the program.
 */
#ifndef TOOLS_SESSION_H
#define TOOLS_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dat/udat.h>

struct session {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE cr_evd;
	DAT_EVD_HANDLE connect_evd;
	DAT_EVD_HANDLE recv_evd;
	DAT_EVD_HANDLE request_evd;
	struct sockaddr_storage address; /* of the adapter */
	uint32_t timeout_ms;		 /* of each step and each transfer */
	bool is_polling;		 /* poll dat_evd_dequeue instead of waiting */
};

struct session_buffer {
	unsigned char *data;
	size_t len;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	int fd;		/* of the memory file; -1: private memory */
	bool is_mapped; /* private memory in huge pages */
};

/* The private data of the peer's request or answer. */
struct session_private {
	unsigned char data[256];
	size_t len;
};

int session_open(struct session *session, const char *adapter, bool is_polling,
		 uint32_t timeout_ms);
void session_close(struct session *session);

int session_buffer_create(struct session *session, size_t len, struct session_buffer *buffer_out);
/* A buffer in a memory file of fixed size, which a peer on this host can map. */
int session_buffer_create_shared(struct session *session, size_t len,
				 struct session_buffer *buffer_out);
/* A private buffer in huge pages, which the system must have reserved. */
int session_buffer_create_huge(struct session *session, size_t len,
			       struct session_buffer *buffer_out);
void session_buffer_destroy(struct session_buffer *buffer);

/* Takes the next event. timeout_ms 0 waits for ever. -ETIMEDOUT: no message. */
int session_wait(struct session *session, DAT_EVD_HANDLE evd, uint32_t timeout_ms,
		 DAT_EVENT *event_out);

/* Listens. If *qualifier is 0, the provider chooses one, which is stored there. */
int session_listen(struct session *session, DAT_CONN_QUAL *qualifier, DAT_PSP_HANDLE *psp_out);

int session_endpoint_create(struct session *session, DAT_EP_HANDLE *endpoint_out);

/* Connects. Stores the peer's private data in `answer_out`, which may be NULL. */
int session_connect(struct session *session, DAT_EP_HANDLE endpoint, struct sockaddr *address,
		    DAT_CONN_QUAL qualifier, const void *private_data, size_t private_len,
		    struct session_private *answer_out);

/* What a connection uses: "shm", "tcp", "rdma" (a device), or "unknown" for another provider. */
const char *session_path_text(struct session *session, DAT_EP_HANDLE endpoint);

/*
 * Waits for a connection request and reads its private data. timeout_ms 0 waits for ever.
 * -ETIMEDOUT: no message.
 */
int session_request_wait(struct session *session, uint32_t timeout_ms, DAT_CR_HANDLE *request_out,
			 struct session_private *hello_out);
/* A request that cannot be accepted is rejected. */
int session_accept(struct session *session, DAT_CR_HANDLE request, DAT_EP_HANDLE endpoint,
		   const void *private_data, size_t private_len);

/*
 * Disconnects, waits for the event, and discards the completions of flushed transfers. If `is_ours`
 * is false, the peer disconnects.
 */
int session_disconnect(struct session *session, DAT_EP_HANDLE endpoint, bool is_ours);

int session_post_recv(struct session_buffer *buffer, size_t offset, size_t len,
		      DAT_EP_HANDLE endpoint, uint64_t cookie);
int session_post_send(struct session_buffer *buffer, size_t offset, size_t len,
		      DAT_EP_HANDLE endpoint);
int session_post_rdma(struct session_buffer *buffer, size_t len, DAT_EP_HANDLE endpoint,
		      const DAT_RMR_TRIPLET *remote, bool is_read);

/*
 * Takes one completion. A flushed one returns -ENOTCONN without a message, because the end of the
 * connection may be expected. Any other error prints a message and returns -ECONNRESET.
 */
int session_complete(struct session *session, DAT_EVD_HANDLE evd, uint64_t *cookie_out,
		     size_t *len_out);
/* session_complete for an event that was taken. */
int session_completion(const DAT_EVENT *event, uint64_t *cookie_out, size_t *len_out);

#endif
