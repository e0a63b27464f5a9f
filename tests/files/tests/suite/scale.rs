use files_tests::scale::measure;

#[test]
fn a_folder_of_many_files_is_listed_quickly_and_once() {
    let folder = tempfile::tempdir().unwrap();
    let figures = measure(folder.path(), 3_000).unwrap();
    assert_eq!(figures.rows, 3 * 3_001);
    assert!(figures.idle_listing < 0.05, "nothing new is found by looking at the folder alone: {figures:?}");
    assert!(figures.listing_memory < 64 << 20, "{figures:?}");
}
