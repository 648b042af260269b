"""Settings of configurations that change neither hidden states nor token ids."""

# In Hugging Face's config.json: bookkeeping, training, heads, generation.
_CONFIG = """
_attn_implementation_autoset _name_or_path _num_labels architectures
bad_words_ids begin_suppress_tokens bos_token_id chunk_size_feed_forward
classifier_dropout classifier_dropout_prob cross_attention_hidden_size
decoder_start_token_id directionality diversity_penalty do_sample
down_scale_factor dtype early_stopping encoder_no_repeat_ngram_size end_n_top
eos_token_id exponential_decay_length_penalty finetuning_task
forced_bos_token_id forced_eos_token_id gap_size gradient_checkpointing id2label
initializer_range label2id language length_penalty max_length mem_len min_length
model_type name net_structure_type no_repeat_ngram_size num_beam_groups
num_beams num_labels num_memory_blocks num_return_sequences output_attentions
output_hidden_states output_past output_scores pad_token_id pooler_fc_size
pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type
prefix problem_type qa_dropout remove_invalid_values repetition_penalty
return_dict return_dict_in_generate sep_token_id seq_classif_dropout
sinusoidal_pos_embds start_n_top summary_activation summary_last_dropout
summary_type summary_use_proj suppress_tokens task_specific_params temperature
tf_legacy_loss tie_encoder_decoder tie_weights_ tie_word_embeddings
tokenizer_class top_k top_p torch_dtype torchscript transformers_version
typical_p use_bfloat16 use_cache use_mems_eval use_mems_train
"""

# In tokenizer_config.json: names of files, decoding, truncation and padding. tfeff adds
# special tokens, truncates and pads by its own settings.
_TOKENIZER = """
backend chat_template clean_up_tokenization_spaces errors from_slow
full_tokenizer_file init_inputs is_local local_files_only max_len max_length
model_input_names model_max_length name_or_path pad_to_multiple_of
pad_token_type_id padding padding_side processor_class return_token_type_ids
sep_token_id special_tokens_map_file split_special_tokens stride tokenizer_file
transformers_version trim_offsets truncation truncation_side truncation_strategy
use_fast vocab_file
"""

CONFIG = frozenset(_CONFIG.split())
TOKENIZER = frozenset(_TOKENIZER.split())
