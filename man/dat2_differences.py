# SPDX-License-Identifier: BSD-2-Clause
"""What the manual pages of DAT 2.0 say otherwise than those of DAT 1.2; see docs/spec/dat2.md."""

TRIPLET = ("A segment has 16 bytes: virtual_address, segment_length of 32 bits and lmr_context. The address "
           "in a DAT_RMR_TRIPLET is virtual_address, too.")
SUM = "The lengths of all segments are at most 0xFFFFFFFF bytes."
OPERATION = ("The operation of a completion tells its kind: DAT_DTO_SEND, DAT_DTO_RDMA_WRITE, "
             "DAT_DTO_RDMA_READ, DAT_DTO_RECEIVE or DAT_DTO_RECEIVE_WITH_INVALIDATE.")
EVENT = ("DAT_EVENT has 120 bytes. Its event_extension_data are set by events of extensions alone: "
         "those of a DAT_IB_DTO_EVENT are a DAT_IB_EXTENSION_EVENT_DATA.")
SIZES = ("max_message_size and max_rdma_size have 32 bits. comm of DAT_EP_PARAM is the address family of the "
         "adapter, SOCK_STREAM and IPPROTO_TCP.")
SERVICE = "The service type DAT_IB_SERVICE_TYPE_UD returns DAT_MODEL_NOT_SUPPORTED."
VA_TYPE = "DAT_VA_TYPE_VA; DAT_VA_TYPE_ZB returns DAT_MODEL_NOT_SUPPORTED"
OPEN = ("The adapter is one of version 2 of the API: a line of dat.conf with u2.0, or an adapter without a "
        "line. Those have names that begin with ofa-v2-, too, for example ofa-v2-lo.")

# {call: {parameter: (direction, text)}}: those that DAT 1.2 lacks
PARAMETERS = {
    "dat_cr_reject": {
        "private_data_size": ("in", "bytes for the peer, up to max_private_data_size"),
        "private_data": ("in", "they come with the event of the rejection; NULL if the size is 0"),
    },
    "dat_lmr_create": {"va_type": ("in", VA_TYPE)},
    "dat_rmr_bind": {
        "lmr_handle": ("in", "the region whose key is in lmr_triplet; ignored if the length is 0"),
        "va_type": ("in", VA_TYPE),
    },
}

# {call: [(parameter or type of code, when)]}
CODES = {
    "dat_cr_reject": [("private_data_size", "negative, or more than max_private_data_size"),
                      ("private_data", "NULL, and the size is not 0")],
    "dat_lmr_create": [("va_type", "neither of the two types")],
    "dat_rmr_bind": [("va_type", "neither of the two types")],
}

DIFFERENCES = {
    "dat_cno_query": [
        "proxy_type of DAT_CNO_PARAM says what the CNO notifies: DAT_PROXY_TYPE_NONE, or "
        "DAT_PROXY_TYPE_AGENT with the agent in proxy. A mask is one of the fields, DAT_CNO_FIELD_ALL or "
        "less; every mask but 0 fills everything."],
    "dat_cr_reject": ["The two last parameters are new."],
    "dat_ep_connect": ["DAT_CONNECT_MULTIPATH_REQUESTED_FLAG is accepted and has no effect; "
                       "DAT_CONNECT_MULTIPATH_REQUIRED_FLAG returns DAT_MODEL_NOT_SUPPORTED."],
    "dat_ep_create": [SIZES, SERVICE],
    "dat_ep_create_with_srq": [
        SIZES, SERVICE,
        "When the endpoint leaves the connected state, DAT_ASYNC_ERROR_EP_BROKEN comes on the asynchronous "
        "EVD: it has reported the last Receive that it took."],
    "dat_ep_modify": [SIZES, "DAT_EP_FIELD_COMM is accepted with the value that dat_ep_query shows, or "
                      "with zeros; others return DAT_COMM_NOT_SUPPORTED."],
    "dat_ep_post_rdma_read": [TRIPLET, SUM, OPERATION],
    "dat_ep_post_rdma_write": [TRIPLET, SUM, OPERATION],
    "dat_ep_post_recv": [TRIPLET, SUM, OPERATION],
    "dat_ep_post_send": [TRIPLET, SUM, OPERATION],
    "dat_ep_query": [SIZES],
    "dat_evd_create": ["DAT_EVD_EXTENSION_BASE is accepted. Events of extensions do not need it."],
    "dat_evd_dequeue": [EVENT, OPERATION],
    "dat_evd_post_se": ["The extension data of the event are not carried."],
    "dat_evd_wait": [EVENT, OPERATION],
    "dat_get_handle_type": ["DAT_HANDLE_TYPE_CSP is new. OpenDAT has no object of this type."],
    "dat_ia_open": [OPEN],
    "dat_ia_openv": [OPEN],
    "dat_ia_query": [
        "max_message_size, max_rdma_size and max_lmr_block_size are at most 0xFFFFFFFF, which is no limit "
        "for dat_lmr_create. extension_supported is DAT_EXTENSION_IB. zb_supported, is_signal_safe, "
        "ha_supported and rdma_read_lmr_rmr_context_exposure are false; rmr_scope_supported is "
        "DAT_RMR_SCOPE_PZ.",
        "provider_specific_attr begins with the attributes that programs for InfiniBand look for: among them "
        "DAT_IB_FETCH_AND_ADD, DAT_IB_CMP_AND_SWAP and DAT_IB_IMMED_DATA, TRUE or FALSE."],
    "dat_lmr_create": ["The parameter va_type is new. The privilege DAT_IB_MEM_PRIV_REMOTE_ATOMIC permits "
                       "atomic operations of peers. DAT_MEM_TYPE_SO_VIRTUAL does not exist."],
    "dat_lmr_query": ["va_type of DAT_LMR_PARAM is DAT_VA_TYPE_VA."],
    "dat_lmr_sync_rdma_read": [TRIPLET],
    "dat_lmr_sync_rdma_write": [TRIPLET],
    "dat_provider_init": ["dapl_version_major is 2, and the table of calls is that of DAT 2.0."],
    "dat_registry_add_provider": ["dapl_version_major is 2, and the table of calls is that of DAT 2.0."],
    "dat_registry_list_providers": [
        "With room for fewer entries than there are the call fills what fits and succeeds; then "
        "entries_returned is the number filled. Room for none is DAT_INVALID_PARAMETER."],
    "dat_rmr_bind": ["The parameters lmr_handle and va_type are new. A region that is not alive is "
                     "DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_LMR.", TRIPLET],
    "dat_rmr_query": ["rmr_scope of DAT_RMR_PARAM is DAT_RMR_SCOPE_PZ and va_type is DAT_VA_TYPE_VA.",
                      TRIPLET],
    "dat_srq_post_recv": [TRIPLET, SUM],
    "dat_srq_query": ["The state of a working queue is DAT_SRQ_STATE_OPERATIONAL, which is 1."],
    "dat_strerror": ["The codes are those of DAT 2.0. Those of extensions have the name DAT_EXTENSION_BASE."],
}
