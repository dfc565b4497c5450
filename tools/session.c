// SPDX-License-Identifier: BSD-2-Clause
/* Connections over the public API; see session.h. */
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <dat/opendat.h>

#include "common.h"
#include "refused.h"

#define SESSION_EVD_LEN 64
/* A wait is cut into slices, so that a signal just before it is noticed. */
#define SESSION_SLICE_US 500000u

static int session_query(struct session *session)
{
	DAT_IA_ATTR attr;
	DAT_RETURN code;
	size_t len;

	code = dat_ia_query(session->ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL);
	if (code != DAT_SUCCESS)
		return tool_call_failed("dat_ia_query", code);
	len = attr.ia_address_ptr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
							 : sizeof(struct sockaddr_in);
	memcpy(&session->address, attr.ia_address_ptr, len);
	return 0;
}

static int session_evd_create(struct session *session, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd_out)
{
	DAT_RETURN code =
		dat_evd_create(session->ia, SESSION_EVD_LEN, DAT_HANDLE_NULL, flags, evd_out);

	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_evd_create", code);
}

int session_open(struct session *session, const char *adapter, bool is_polling, uint32_t timeout_ms)
{
	DAT_RETURN code;

	*session = (struct session){.is_polling = is_polling, .timeout_ms = timeout_ms};
	code = tool_ia_open(adapter, &session->async_evd, &session->ia);
	if (code != DAT_SUCCESS) {
		char text[160];

		session->ia = DAT_HANDLE_NULL;
		tool_complain("cannot open adapter %s: dat_ia_open: %s", adapter,
			      tool_return_text(code, text, sizeof(text)));
		tool_complain("`dat_info --adapter %s` says why and what to do, `dat_info` lists "
			      "the adapters",
			      adapter);
		return -EIO;
	}
	code = dat_pz_create(session->ia, &session->pz);
	if (code != DAT_SUCCESS) {
		tool_call_failed("dat_pz_create", code);
		goto fail;
	}
	if (session_query(session) != 0 ||
	    session_evd_create(session, DAT_EVD_CR_FLAG, &session->cr_evd) != 0 ||
	    session_evd_create(session, DAT_EVD_CONNECTION_FLAG, &session->connect_evd) != 0 ||
	    session_evd_create(session, DAT_EVD_DTO_FLAG, &session->recv_evd) != 0 ||
	    session_evd_create(session, DAT_EVD_DTO_FLAG, &session->request_evd) != 0)
		goto fail;
	return 0;
fail:
	session_close(session);
	return -EIO;
}

void session_close(struct session *session)
{
	if (session->ia)
		dat_ia_close(session->ia, DAT_CLOSE_ABRUPT_FLAG);
	session->ia = DAT_HANDLE_NULL;
}

static void session_buffer_free(struct session_buffer *buffer)
{
	if (buffer->fd >= 0 || buffer->is_mapped) {
		munmap(buffer->data, buffer->len);
		if (buffer->fd >= 0)
			close(buffer->fd);
	} else {
		free(buffer->data);
	}
	*buffer = (struct session_buffer){.fd = -1};
}

static int session_buffer_register(struct session *session, struct session_buffer *buffer)
{
	DAT_REGION_DESCRIPTION region;
	DAT_RETURN code;

	memset(&region, 0, sizeof(region));
	region.for_va = buffer->data;
	code = dat_lmr_create(session->ia, DAT_MEM_TYPE_VIRTUAL, region, buffer->len, session->pz,
			      DAT_MEM_PRIV_ALL_FLAG, &buffer->lmr, &buffer->lmr_context,
			      &buffer->rmr_context, NULL, NULL);
	if (code == DAT_SUCCESS)
		return 0;
	session_buffer_free(buffer);
	return tool_call_failed("dat_lmr_create", code);
}

int session_buffer_create(struct session *session, size_t len, struct session_buffer *buffer_out)
{
	*buffer_out = (struct session_buffer){.len = len, .fd = -1};
	if (posix_memalign((void **)&buffer_out->data, 4096, len) != 0) {
		*buffer_out = (struct session_buffer){.fd = -1};
		tool_complain("no memory for a buffer of %zu bytes", len);
		return -ENOMEM;
	}
	memset(buffer_out->data, 0, len);
	return session_buffer_register(session, buffer_out);
}

int session_buffer_create_shared(struct session *session, size_t len,
				 struct session_buffer *buffer_out)
{
	int fd = memfd_create("session", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *data = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, (off_t)len) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		data = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED) {
		*buffer_out = (struct session_buffer){.fd = -1};
		tool_complain("no shared memory for a buffer of %zu bytes: %s", len,
			      strerror(errno));
		if (fd >= 0)
			close(fd);
		return -ENOMEM;
	}
	*buffer_out = (struct session_buffer){.data = data, .len = len, .fd = fd};
	/* writes to the pages now, so that no transfer has to allocate them */
	memset(data, 0, len);
	return session_buffer_register(session, buffer_out);
}

/* The size of a huge page by default. 0: not known. */
static size_t huge_page_size(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	unsigned long kib = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Hugepagesize: %lu kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return (size_t)kib << 10;
}

int session_buffer_create_huge(struct session *session, size_t len,
			       struct session_buffer *buffer_out)
{
	size_t page = huge_page_size();
	void *data = MAP_FAILED;

	*buffer_out = (struct session_buffer){.fd = -1};
	errno = EOPNOTSUPP;
	if (page > 0) {
		len = (len + page - 1) / page * page;
		data = mmap(NULL, len, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	}
	if (data == MAP_FAILED) {
		tool_complain("no huge pages for a buffer of %zu bytes: %s", len, strerror(errno));
		tool_complain(
			"reserve them: sysctl vm.nr_hugepages=NUMBER; /proc/meminfo shows how "
			"many are free");
		return -ENOMEM;
	}
	*buffer_out =
		(struct session_buffer){.data = data, .len = len, .fd = -1, .is_mapped = true};
	memset(data, 0, len);
	return session_buffer_register(session, buffer_out);
}

void session_buffer_destroy(struct session_buffer *buffer)
{
	if (!buffer->data)
		return;
	dat_lmr_free(buffer->lmr);
	session_buffer_free(buffer);
}

/* Polls the EVD once or waits for one slice. -EAGAIN: no event. */
static int session_wait_slice(struct session *session, DAT_EVD_HANDLE evd, uint64_t remaining_us,
			      DAT_EVENT *event_out)
{
	DAT_COUNT more;
	DAT_RETURN code;

	if (session->is_polling) {
		code = dat_evd_dequeue(evd, event_out);
		if (DAT_GET_TYPE(code) == DAT_QUEUE_EMPTY)
			return -EAGAIN;
	} else {
		if (remaining_us > SESSION_SLICE_US)
			remaining_us = SESSION_SLICE_US;
		code = dat_evd_wait(evd, (DAT_TIMEOUT)remaining_us, 1, event_out, &more);
		if (DAT_GET_TYPE(code) == DAT_TIMEOUT_EXPIRED ||
		    DAT_GET_TYPE(code) == DAT_INTERRUPTED_CALL)
			return -EAGAIN;
	}
	if (code == DAT_SUCCESS)
		return 0;
	return tool_call_failed(session->is_polling ? "dat_evd_dequeue" : "dat_evd_wait", code);
}

int session_wait(struct session *session, DAT_EVD_HANDLE evd, uint32_t timeout_ms,
		 DAT_EVENT *event_out)
{
	uint64_t remaining_us = (uint64_t)timeout_ms * 1000;
	uint64_t end = 0;
	unsigned polls = 0;
	int rc;

	if (timeout_ms == 0)
		remaining_us = SESSION_SLICE_US;
	for (;;) {
		if (tool_is_stopped)
			return -EINTR;
		rc = session_wait_slice(session, evd, remaining_us, event_out);
		if (rc != -EAGAIN)
			return rc;
		/* reading the clock costs more than polling an empty EVD */
		if (timeout_ms == 0 || (session->is_polling && ++polls % 256 != 0))
			continue;
		if (end == 0)
			end = tool_now_ns() / 1000 + remaining_us;
		if (tool_now_ns() / 1000 >= end)
			return -ETIMEDOUT;
		remaining_us = end - tool_now_ns() / 1000;
	}
}

int session_listen(struct session *session, DAT_CONN_QUAL *qualifier, DAT_PSP_HANDLE *psp_out)
{
	DAT_RETURN code;

	if (*qualifier != 0) {
		code = dat_psp_create(session->ia, *qualifier, session->cr_evd,
				      DAT_PSP_CONSUMER_FLAG, psp_out);
		return code == DAT_SUCCESS ? 0 : refused_listen("dat_psp_create", code, *qualifier);
	}
	code = dat_psp_create_any(session->ia, qualifier, session->cr_evd, DAT_PSP_CONSUMER_FLAG,
				  psp_out);
	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_psp_create_any", code);
}

int session_endpoint_create(struct session *session, DAT_EP_HANDLE *endpoint_out)
{
	DAT_RETURN code =
		dat_ep_create(session->ia, session->pz, session->recv_evd, session->request_evd,
			      session->connect_evd, NULL, endpoint_out);

	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_ep_create", code);
}

static void session_answer(const DAT_EVENT *event, struct session_private *answer_out)
{
	const DAT_CONNECTION_EVENT_DATA *data = &event->event_data.connect_event_data;

	answer_out->len = 0;
	if (data->private_data_size > 0 &&
	    (size_t)data->private_data_size <= sizeof(answer_out->data)) {
		answer_out->len = (size_t)data->private_data_size;
		memcpy(answer_out->data, data->private_data, answer_out->len);
	}
}

/* The event of that endpoint; the ends of other connections may come first, and are left out. */
static int wait_for_endpoint(struct session *session, DAT_EP_HANDLE endpoint, DAT_EVENT *event_out)
{
	int rc;

	do
		rc = session_wait(session, session->connect_evd, session->timeout_ms, event_out);
	while (rc == 0 && event_out->event_data.connect_event_data.ep_handle != endpoint);
	return rc;
}

int session_connect(struct session *session, DAT_EP_HANDLE endpoint, struct sockaddr *address,
		    DAT_CONN_QUAL qualifier, const void *private_data, size_t private_len,
		    struct session_private *answer_out)
{
	DAT_EVENT event;
	DAT_RETURN code;
	int rc;

	code = dat_ep_connect(endpoint, address, qualifier, session->timeout_ms * 1000u,
			      (DAT_COUNT)private_len, (DAT_PVOID)(uintptr_t)private_data,
			      DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
	if (code != DAT_SUCCESS)
		return refused_call("dat_ep_connect", code);
	rc = wait_for_endpoint(session, endpoint, &event);
	if (rc == -ETIMEDOUT)
		refused_silence(address, qualifier, session->timeout_ms);
	if (rc != 0)
		return rc;
	if (event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED) {
		refused_event(address, qualifier, event.event_number);
		return -ECONNREFUSED;
	}
	if (answer_out)
		session_answer(&event, answer_out);
	return 0;
}

int session_request_wait(struct session *session, uint32_t timeout_ms, DAT_CR_HANDLE *request_out,
			 struct session_private *hello_out)
{
	DAT_CR_PARAM param;
	DAT_EVENT event;
	DAT_RETURN code;
	int rc;

	rc = session_wait(session, session->cr_evd, timeout_ms, &event);
	if (rc != 0)
		return rc;
	*request_out = event.event_data.cr_arrival_event_data.cr_handle;
	code = dat_cr_query(*request_out, DAT_CR_FIELD_ALL, &param);
	if (code != DAT_SUCCESS)
		return tool_call_failed("dat_cr_query", code);
	hello_out->len = 0;
	if (param.private_data_size > 0 &&
	    (size_t)param.private_data_size <= sizeof(hello_out->data)) {
		hello_out->len = (size_t)param.private_data_size;
		memcpy(hello_out->data, param.private_data, hello_out->len);
	}
	return 0;
}

int session_accept(struct session *session, DAT_CR_HANDLE request, DAT_EP_HANDLE endpoint,
		   const void *private_data, size_t private_len)
{
	DAT_RETURN code = dat_cr_accept(request, endpoint, (DAT_COUNT)private_len,
					(DAT_PVOID)(uintptr_t)private_data);
	DAT_EVENT event;
	int rc;

	if (code != DAT_SUCCESS) {
		rc = refused_call("dat_cr_accept", code);
		/* or the client would wait for an answer */
		dat_cr_reject(request);
		return rc;
	}
	rc = session_wait(session, session->connect_evd, session->timeout_ms, &event);
	if (rc == -ETIMEDOUT)
		tool_complain("the accepted connection was not made in %u ms", session->timeout_ms);
	if (rc != 0 || event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		return rc;
	tool_complain("cannot accept: %s", tool_event_text(event.event_number));
	return -ECONNREFUSED;
}

int session_disconnect(struct session *session, DAT_EP_HANDLE endpoint, bool is_ours)
{
	DAT_EVENT event;
	DAT_RETURN code;
	int rc;

	if (is_ours) {
		code = dat_ep_disconnect(endpoint, DAT_CLOSE_GRACEFUL_FLAG);
		if (code != DAT_SUCCESS)
			return tool_call_failed("dat_ep_disconnect", code);
	}
	do {
		rc = session_wait(session, session->connect_evd, session->timeout_ms, &event);
	} while (rc == 0 && event.event_number != DAT_CONNECTION_EVENT_DISCONNECTED &&
		 event.event_number != DAT_CONNECTION_EVENT_BROKEN);
	if (rc == -ETIMEDOUT)
		tool_complain("the connection did not end in %u ms", session->timeout_ms);
	/* discard the completions of flushed transfers */
	while (dat_evd_dequeue(session->recv_evd, &event) == DAT_SUCCESS)
		continue;
	while (dat_evd_dequeue(session->request_evd, &event) == DAT_SUCCESS)
		continue;
	return rc;
}

static DAT_LMR_TRIPLET session_triplet(struct session_buffer *buffer, size_t offset, size_t len)
{
	return (DAT_LMR_TRIPLET){.lmr_context = buffer->lmr_context,
				 .virtual_address = (uintptr_t)(buffer->data + offset),
				 .segment_length = len};
}

int session_post_recv(struct session_buffer *buffer, size_t offset, size_t len,
		      DAT_EP_HANDLE endpoint, uint64_t cookie)
{
	DAT_LMR_TRIPLET triplet = session_triplet(buffer, offset, len);
	DAT_RETURN code = dat_ep_post_recv(endpoint, 1, &triplet, (DAT_DTO_COOKIE){.as_64 = cookie},
					   DAT_COMPLETION_DEFAULT_FLAG);

	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_ep_post_recv", code);
}

int session_post_send(struct session_buffer *buffer, size_t offset, size_t len,
		      DAT_EP_HANDLE endpoint)
{
	DAT_LMR_TRIPLET triplet = session_triplet(buffer, offset, len);
	DAT_RETURN code = dat_ep_post_send(endpoint, 1, &triplet, (DAT_DTO_COOKIE){.as_64 = 0},
					   DAT_COMPLETION_DEFAULT_FLAG);

	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_ep_post_send", code);
}

int session_post_rdma(struct session_buffer *buffer, size_t len, DAT_EP_HANDLE endpoint,
		      const DAT_RMR_TRIPLET *remote, bool is_read)
{
	DAT_LMR_TRIPLET triplet = session_triplet(buffer, 0, len);
	DAT_DTO_COOKIE cookie = {.as_64 = 0};
	DAT_RETURN code;

	if (is_read)
		code = dat_ep_post_rdma_read(endpoint, 1, &triplet, cookie, remote,
					     DAT_COMPLETION_DEFAULT_FLAG);
	else
		code = dat_ep_post_rdma_write(endpoint, 1, &triplet, cookie, remote,
					      DAT_COMPLETION_DEFAULT_FLAG);
	if (code == DAT_SUCCESS)
		return 0;
	return tool_call_failed(is_read ? "dat_ep_post_rdma_read" : "dat_ep_post_rdma_write", code);
}

int session_complete(struct session *session, DAT_EVD_HANDLE evd, uint64_t *cookie_out,
		     size_t *len_out)
{
	DAT_EVENT event;
	int rc = session_wait(session, evd, session->timeout_ms, &event);

	if (rc == -ETIMEDOUT)
		tool_complain("no completion in %u ms", session->timeout_ms);
	return rc == 0 ? session_completion(&event, cookie_out, len_out) : rc;
}

int session_completion(const DAT_EVENT *event, uint64_t *cookie_out, size_t *len_out)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *data = &event->event_data.dto_completion_event_data;
	bool is_completion = event->event_number == DAT_DTO_COMPLETION_EVENT;

	if (is_completion && data->status == DAT_DTO_ERR_FLUSHED)
		return -ENOTCONN;
	if (!is_completion || data->status != DAT_DTO_SUCCESS) {
		tool_complain("transfer failed: %s",
			      is_completion ? tool_dto_status_text(data->status)
					    : tool_event_text(event->event_number));
		return -ECONNRESET;
	}
	if (cookie_out)
		*cookie_out = data->user_cookie.as_64;
	if (len_out)
		*len_out = data->transfered_length;
	return 0;
}

const char *session_path_text(struct session *session, DAT_EP_HANDLE endpoint)
{
	DAT_OPENDAT_PEER process = {.size = sizeof(process)};
	DAT_IA_ATTR attr;

	/* devices know nothing of the process at the other end */
	if (dat_opendat_peer(endpoint, &process) == DAT_SUCCESS)
		return process.flags & DAT_OPENDAT_PEER_TCP ? "tcp" : "shm";
	if (dat_ia_query(session->ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL) != DAT_SUCCESS)
		return "unknown";
	for (int i = 0; i < attr.num_transport_attr; i++)
		if (strcmp(attr.transport_attr[i].name, "link") == 0)
			return "rdma";
	return "unknown";
}
